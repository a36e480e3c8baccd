"""Labelled workloads, run and learnt from, become bundles."""
