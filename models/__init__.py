"""Data only: one folder per bundle, arrays.npz with card.json beside it."""
