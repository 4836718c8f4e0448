"""The site of the documentation: what MkDocs does not do by itself.

    hooks           links out of docs/, pages that are not there, parts that are generated
    command_line    all commands, for the reference of the command line
    configuration   the reference of the configuration, from the types that read it
    public_names    the reference of the Python API, from the docstrings of the public modules
    metrics         the reference of the metrics, from the objects that serve them
    terminal        the picture of `stowplan explain` in the README

mkdocs.yml names the pages. Nothing here is installed with Stowplan.
"""
