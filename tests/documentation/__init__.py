"""The pages for users: links, anchors, commands, the tutorial, and the site that is made of them.

README.md lists the tests of each page.
"""
