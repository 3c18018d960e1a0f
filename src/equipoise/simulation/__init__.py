"""Simulate whole studies and measure regret."""

from equipoise.simulation.results import Comparison, Curve, Simulation
from equipoise.simulation.simulator import simulate, simulate_budgets

__all__ = ["Comparison", "Curve", "Simulation", "simulate", "simulate_budgets"]
