"""Who yields RawSlices."""
