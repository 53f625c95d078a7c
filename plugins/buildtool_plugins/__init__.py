"""The target families that come with buildtool: one folder each, which has a folder `boards`."""
