"""`stowplan capacity`: how many more pods of a kind fit, what stops the next one, and how many nodes would be needed."""
