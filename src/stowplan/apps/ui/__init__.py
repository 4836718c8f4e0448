"""`stowplan ui`: pages that show what a scheduler sees, and why. They read, and change nothing.

markup      HTML as values: every text is escaped, because there is no other way to write one
access      who may read a page: the token, Host and Origin; what a browser may do with it
cluster     the model: the objects of a cluster, and an engine that explains them (`start here`)
sources     where the model's objects come from: a dump, or the reflectors of a live cluster
site        which page answers which address; `pages/` are functions from the model to markup
streams     server-sent events: the parts of a page that changed
service     from start to end
"""
