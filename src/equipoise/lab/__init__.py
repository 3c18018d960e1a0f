"""The lab: named and random problems, the leaderboard, the paper's experiments, CUDA."""
