"""Target families that come with buildtool: one folder each, found by its boards/."""
