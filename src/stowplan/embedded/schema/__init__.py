"""The fields of every kind: their types, defaults and checks.

builtin_types      built-in kinds, as recorded from a real API server
descriptions       what kinds and fields mean, for `kubectl explain`
typed              JSON checked against a built-in type; unknown fields are found and dropped
custom_resources   CustomResourceDefinitions and the kinds that they define
structural         the structural schema of a custom resource: pruning, defaulting, validation
quantities         the canonical form of a quantity
"""
