"""The lab: simulate whole studies and measure regret."""

from equipoise.lab.simulation import Comparison, Curve, Simulation
from equipoise.lab.simulator import simulate

__all__ = ["Comparison", "Curve", "Simulation", "simulate"]
