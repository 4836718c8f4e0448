"""Who may do what: roles, bindings and the authorizer of RBAC. Pure: documents in, decisions out, time as an argument.

users, access_request  who asks, and for what
role_kinds             the names of the kinds of RBAC
rules                  what a rule of a role allows, and which rules cover others
role_index             the rules of a user, by an index of the subjects of all bindings
authorizer             decisions with their reasons
escalation             nobody grants what they do not have
impersonation          who may act as whom
tokens                 tokens of ServiceAccounts, and of users
default_roles          the roles and bindings that a cluster starts with
role_aggregation       fills the rules of ClusterRoles that collect those of others
"""
