"""The text formats, one file per family: what a call looks like, how it is read, and how it is said."""
