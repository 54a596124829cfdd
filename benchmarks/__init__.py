"""Benchmarks: karat beside its peers, on the data and through the calls that a user has."""
