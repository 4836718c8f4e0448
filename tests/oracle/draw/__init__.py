"""Random scheduling scenarios in the form of the golden records.

    python -m tests.oracle.draw --category preemption --count 400 --seed 1 | recorder -admit -drop

The same arguments always give the same scenarios: every draw counts, so a changed order of draws is a changed scenario.
Objects are written the way a user would write them; ``recorder -admit`` gives them the form an API server stores, and
turns away what an API server would turn away.

One module per noun draws the objects; ``categories`` puts them together, one function per category.
"""
