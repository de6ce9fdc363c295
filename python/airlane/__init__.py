"""Simulate multi service link layers: scenarios, sweeps, and figures worth publishing."""

from airlane import custom, plots
from airlane._native import __commit__, __version__
from airlane.errors import AirlaneError, AirlaneWarning, RunError, ScenarioError
from airlane.events import Event, Probe, events
from airlane.executors import AnyExecutor
from airlane.result import (
    Count,
    DirectionResult,
    FlowResult,
    FlowService,
    LinkResult,
    RadioResult,
    RunResult,
    ServiceResult,
    ServiceShare,
    StationResult,
    run,
)
from airlane.scenario import Scenario, ScenarioSource, Value
from airlane.summary import Precision, difference, summary
from airlane.sweep import merge, sweep

__all__ = [
    "AirlaneError",
    "AirlaneWarning",
    "AnyExecutor",
    "Count",
    "DirectionResult",
    "Event",
    "FlowResult",
    "FlowService",
    "LinkResult",
    "Precision",
    "Probe",
    "RadioResult",
    "RunError",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "ScenarioSource",
    "ServiceResult",
    "ServiceShare",
    "StationResult",
    "Value",
    "__commit__",
    "__version__",
    "custom",
    "difference",
    "events",
    "merge",
    "plots",
    "run",
    "summary",
    "sweep",
]
