"""The lab: simulate whole studies and measure regret."""

from equipoise.lab.simulation import Comparison, Curve, Simulation, simulate

__all__ = ["Comparison", "Curve", "Simulation", "simulate"]
