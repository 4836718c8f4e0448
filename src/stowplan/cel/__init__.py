"""The Common Expression Language (CEL), as Kubernetes uses it.

    environment   which variables, functions and types an expression may name; checks and compiles expressions
    declarations  the functions of every environment: the standard's and Kubernetes' own
    syntax        the checked syntax tree
    evaluation    runs a tree, and counts the cost
    functions     what runs: operators and optionals; `kubernetes`, `networks`, `formats`, `strings`, `patterns`; the
                  rest by `library`
    costs         what a call costs
    sizes         what a value takes, and what a result will take
    values        equality, order and types of values

Nothing here knows what expressions are about. The users of this package make an `Environment` of their own.
"""
