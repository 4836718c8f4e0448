"""The pages. Each module has two functions: `read` asks the model and returns plain data, the JSON of the page; `show`
makes a view of that, and of nothing else. So what a page says and what its JSON says cannot differ.
"""
