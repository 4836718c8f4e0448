"""Decisions over time, pure: changes come in, actions go out; the clock and the random generator are arguments."""
