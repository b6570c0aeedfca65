"""Combinations that Optuna's sampler proposes (the extra ``sweep``), from what earlier trials have reached.

The study is built anew from the runs on the disk each time, so a sweep goes on after any stop.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from keisei.errors import ConfigError
from keisei.training.experiments.choices import Choice, Combination, Range, Values

__all__ = ["propose"]


def propose(
    choices: Mapping[str, Choice], told: Sequence[tuple[Combination, float | None]], count: int
) -> list[Combination]:
    """Proposes ``count`` combinations. ``told`` has the trials so far with what they reached, larger being better; None
    for those that failed."""
    optuna = _optuna()
    distributions = {name: _distribution(optuna, choice) for name, choice in choices.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parts of the sampler call themselves experimental
        sampler = optuna.samplers.TPESampler(seed=len(told), constant_liar=True)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for settings, value in told:
            study.add_trial(_trial(optuna, settings, choices, distributions, value))
        asked = [study.ask(distributions).params for _ in range(count)]
    return [{name: _text(choices[name], params[name]) for name in choices} for params in asked]


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ConfigError(
            "--optuna needs the package optuna: pip install 'keisei[sweep]'; --random N needs nothing"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _distribution(optuna: Any, choice: Choice) -> Any:
    if isinstance(choice, Values):
        return optuna.distributions.CategoricalDistribution(choice.texts)
    if choice.whole:
        return optuna.distributions.IntDistribution(
            int(choice.low), int(choice.high), log=choice.by_magnitude
        )
    return optuna.distributions.FloatDistribution(choice.low, choice.high, log=choice.by_magnitude)


def _trial(
    optuna: Any,
    settings: Combination,
    choices: Mapping[str, Choice],
    distributions: Mapping[str, Any],
    value: float | None,
) -> Any:
    params = {name: _value(choices[name], text) for name, text in settings.items()}
    state = optuna.trial.TrialState.FAIL if value is None else optuna.trial.TrialState.COMPLETE
    return optuna.trial.create_trial(params=params, distributions=distributions, value=value, state=state)


def _value(choice: Choice, text: str) -> object:
    if isinstance(choice, Range):
        return int(text) if choice.whole else float(text)
    return text


def _text(choice: Choice, value: Any) -> str:
    return choice.text(value) if isinstance(choice, Range) else str(value)
