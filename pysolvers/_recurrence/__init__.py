"""Linear recurrences."""

from .calls import linear_recurrence as linear_recurrence
