"""The leaderboard: every strategy on every problem of the suite."""
