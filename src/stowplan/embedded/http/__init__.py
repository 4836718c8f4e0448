"""The API over HTTP. `server` does the I/O; every other module computes a response from a request.

server             connections, authorization, long-running watches
handlers           which verb a request means, and its response; `reads` for get, list and watch
requests           paths, query parameters, media types, bodies (`protobuf` for kubectl's)
responses          status codes and bodies
watches            watch events as lines of JSON
discovery, openapi what the server says about itself
reviews            TokenReview, SubjectAccessReview and their relatives
"""
