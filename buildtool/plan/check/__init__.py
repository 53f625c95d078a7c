"""Proves a plan legal without trusting who made it: replay on tagged memory, lifetimes, contracts."""
