"""Placing the pages of a program that runs, from outside."""
