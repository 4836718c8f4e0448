"""The API without HTTP: every verb on every kind, and the rules that they follow.

verbs              `Api`: get, create, update, delete
subresources       binding, eviction (with `eviction_budgets`), scale, finalize
decoding           a request's body becomes a document of its kind
lifecycle          metadata, generations, finalizers, deletion
patching           JSON patches and merge patches; `strategic_merge` for strategic merge patches
server_side_apply  applied configurations; `field_ownership` keeps `managedFields`
listing, selectors lists with label and field selectors, page by page
versions           one stored object at several API versions
request_options    options of a request: the time, dry run, field validation
"""
