"""The loops that carry experience to learners and weights back."""
