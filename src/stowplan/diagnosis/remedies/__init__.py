"""A module for each kind of remedy. Each makes offers; `search` combines them and tries them."""
