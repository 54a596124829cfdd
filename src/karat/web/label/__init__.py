"""The labelling page: people grade the items of a pool, blind, and every answer is on disk before the next appears."""
