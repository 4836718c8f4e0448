"""A cluster's scheduling-relevant objects as plain documents: which fields a dump has, and names replaced."""
