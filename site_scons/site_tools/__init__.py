"""SCons tools; installed as the package `buildtool_scons`, for toolpath=[PyPackageDir("buildtool_scons")]."""
