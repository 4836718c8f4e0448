"""ResourceQuotas: what objects use, what a quota allows, and which requests would exceed it.

amounts          quantities that can be added up, and are written as the API server writes them
pod_resources    what a pod requests and is limited to
usage            what an object of each kind uses of a quota
scopes           which objects a quota is about
ledger           what is used of each quota, kept up to date by changes
enforcement      which requests are refused, and in which words
"""
