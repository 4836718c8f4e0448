"""`stowplan capacity`: how many more pods fit, what stops the next one, how many nodes would be needed."""
