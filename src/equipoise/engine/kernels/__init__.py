"""The kernels, one file each: how the steps of many simulated runs are ordered."""
