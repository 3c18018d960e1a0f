"""What studies, replays and simulations run: a strategy's rule, samples by address, setups, kernels."""
