"""RawSlice in, Moment out."""
