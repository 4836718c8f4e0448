"""Who owns which field, for server-side apply: pure functions on documents.

shapes         how the fields of a kind are divided among owners: objects, lists with keys, sets, and atomic values
field_paths    sets of paths, and FieldsV1, the form that `managedFields` has for them
comparison     the paths of a document, and those in which two documents differ
managers       `managedFields`: who owns what, before and after a write
applying       a configuration merged into a document, and what is no longer applied removed from it
"""
