"""Listening for HTTP without being harmed by who connects: for the pages of programs and for the embedded cluster.

descriptors   how many files this process may open, and how many of them are for connections of others
connections   which connections there are, which of them must go to make room, and when each one's time is up
self_signed   a certificate that a server makes for itself
listener      accepts connections, and serves them with a protocol: aiohttp's, or our own
web           requests, responses and routes of pages; http_protocol: one connection
"""
