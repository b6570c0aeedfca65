"""Sampling: always legal, from the distribution it says, and each row for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from keisei.errors import ConfigError, PolicyError
from keisei.policies.sampling import greedy, legal_counts, masked_log_softmax, sample

Matrix = NDArray[Any]
LARGEST = float(np.finfo(np.float32).max)
JUST_BELOW_ONE = 1 - 2.0**-53


def brute_force(logits: Matrix, legal: Matrix, temperature: float, epsilon: float) -> NDArray[np.float64]:
    """The distribution of every row, one number after the other, in double precision."""
    result = np.zeros(logits.shape)
    for row, mask in enumerate(legal):
        actions = np.flatnonzero(mask)
        scores = logits[row, actions].astype(np.float64)
        if temperature == 0:
            weights = (scores == scores.max()).astype(np.float64)
        else:
            weights = np.exp((scores - scores.max()) / temperature)
        result[row, actions] = (1 - epsilon) * weights / weights.sum() + epsilon / len(actions)
    return result


def random_case(rows: int, actions: int, share: float, seed: int) -> tuple[Matrix, Matrix]:
    rng = np.random.default_rng(seed)
    legal = rng.random((rows, actions)) < share
    legal[np.arange(rows), rng.integers(actions, size=rows)] = True
    return rng.normal(0, 2, (rows, actions)).astype(np.float32), legal


numbers = st.sampled_from([0.0, 1.0, -1.0, 30.0, -30.0, 1e-30, 1e30, -1e30, LARGEST, -LARGEST])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Matrix, Matrix, Matrix]:
    """Few or many actions, few or many of them legal, and the numbers that rounding treats worst."""
    actions = draw(st.sampled_from([1, 2, 9, 64, 65, 200, 300, 2187]))
    rows = draw(st.integers(1, 5))
    share = draw(st.sampled_from([0.0, 0.02, 0.5, 1.0]))
    logits, legal = random_case(rows, actions, share, draw(st.integers(0, 2**16)))
    values = draw(st.lists(numbers, min_size=4, max_size=4))
    picks = np.random.default_rng(draw(st.integers(0, 99))).integers(8, size=logits.shape)
    logits = np.where(picks < 4, np.array(values, np.float32)[picks % 4], logits)
    uniforms = draw(
        st.lists(
            st.sampled_from([0.0, 1e-300, 0.5, JUST_BELOW_ONE, 1.0])
            | st.floats(0, 1, exclude_max=True, allow_subnormal=False),
            min_size=rows,
            max_size=rows,
        )
    )
    return logits, legal, np.array(uniforms)


@given(
    cases(),
    st.sampled_from([0.0, 1e-6, 0.1, 1.0, 10.0, 1e6]),
    st.sampled_from([0.0, 1e-12, 0.25, 1.0]),
)
@settings(max_examples=300)
def test_every_action_is_legal_and_has_a_finite_log_prob(
    case: tuple[Matrix, Matrix, Matrix], temperature: float, epsilon: float
) -> None:
    logits, legal, uniforms = case
    actions, log_probs = sample(torch.from_numpy(logits), legal, uniforms, temperature, epsilon)
    assert actions.dtype == np.int32
    assert log_probs.dtype == np.float32
    assert legal[np.arange(len(actions)), actions].all()
    assert np.isfinite(log_probs).all()
    assert (log_probs <= 1e-6).all()


@given(cases(), st.sampled_from([0.0, 0.3, 1.0, 5.0]), st.sampled_from([0.0, 0.2, 1.0]))
def test_log_probs_are_those_of_the_distribution(
    case: tuple[Matrix, Matrix, Matrix], temperature: float, epsilon: float
) -> None:
    logits, legal, uniforms = case
    actions, log_probs = sample(logits, legal, uniforms, temperature, epsilon)
    expected = np.log(brute_force(logits, legal, temperature, epsilon)[np.arange(len(actions)), actions])
    # A weight that float32 knows to 1e-6 of the largest exponent, as a logarithm.
    np.testing.assert_allclose(log_probs, expected, atol=1e-4)


@pytest.mark.parametrize("actions", [7, 300, 2187])
@pytest.mark.parametrize("share", [0.02, 0.6])
@pytest.mark.parametrize(("temperature", "epsilon"), [(1.0, 0.0), (0.5, 0.0), (2.0, 0.3), (0.0, 0.5)])
def test_frequencies_are_those_of_the_distribution(
    actions: int, share: float, temperature: float, epsilon: float
) -> None:
    """One row over and over, with evenly spread uniforms: each action must come up as often as its
    probability says, give or take one draw at either end of its interval."""
    logits, legal = random_case(1, actions, share, seed=actions)
    draws = 4000
    uniforms = (np.arange(draws) + 0.5) / draws
    drawn, _ = sample(np.repeat(logits, draws, 0), np.repeat(legal, draws, 0), uniforms, temperature, epsilon)
    found = np.bincount(drawn, minlength=actions)
    expected = draws * brute_force(logits, legal, temperature, epsilon)[0]
    # With epsilon an action has two intervals: one of the uniform part, one of the rest.
    np.testing.assert_allclose(found, expected, atol=1.5 if epsilon == 0 else 3.0)


def test_larger_uniforms_give_larger_actions() -> None:
    """What makes it an inverse transform: common random numbers stay comparable between distributions."""
    for share in (0.02, 0.6):
        logits, legal = random_case(1, 2187, share, seed=3)
        uniforms = np.linspace(0, 1, 500, endpoint=False)
        actions, _ = sample(np.repeat(logits, 500, 0), np.repeat(legal, 500, 0), uniforms)
        assert (np.diff(actions) >= 0).all()
        assert actions[0] < actions[-1]


@pytest.mark.parametrize("share", [0.01, 0.1, 0.13, 0.9])
def test_a_row_draws_the_same_alone_as_among_others(share: float) -> None:
    """At 0.13 some rows are gathered and some are not, which must not show either."""
    logits, legal = random_case(24, 2187, share, seed=11)
    uniforms = np.random.default_rng(5).random(24)
    for temperature, epsilon in ((1.0, 0.0), (0.7, 0.1)):
        actions, log_probs = sample(logits, legal, uniforms, temperature, epsilon)
        for row in range(24):
            one = slice(row, row + 1)
            action, log_prob = sample(logits[one], legal[one], uniforms[one], temperature, epsilon)
            assert action[0] == actions[row]
            assert log_prob[0].tobytes() == log_probs[row].tobytes()
        order = np.random.default_rng(6).permutation(24)
        again, again_log_probs = sample(logits[order], legal[order], uniforms[order], temperature, epsilon)
        np.testing.assert_array_equal(again, actions[order])
        np.testing.assert_array_equal(again_log_probs, log_probs[order])


def test_memory_of_another_kind_gives_the_same() -> None:
    """Read-only masks as in a slab, slices of wider rows, other precisions, and no rows at all."""
    logits, legal = random_case(6, 300, 0.5, seed=1)
    uniforms = np.random.default_rng(1).random(6)
    expected = sample(logits, legal, uniforms)
    locked = legal.copy()
    locked.flags.writeable = False
    wide_logits, wide_legal = np.zeros((6, 400), np.float32), np.zeros((6, 400), np.bool_)
    wide_logits[:, 50:350], wide_legal[:, 50:350] = logits, legal
    variants: list[tuple[Any, Matrix]] = [
        (logits, locked),
        (wide_logits[:, 50:350], wide_legal[:, 50:350]),
        (torch.from_numpy(logits).double().requires_grad_(), legal),
    ]
    for some_logits, mask in variants:
        for array, wanted in zip(sample(some_logits, mask, uniforms), expected, strict=True):
            np.testing.assert_array_equal(array, wanted)
    for width in (9, 300):
        nothing = sample(np.zeros((0, width), np.float32), np.zeros((0, width), np.bool_), np.zeros(0))
        assert [array.shape for array in nothing] == [(0,), (0,)]


def test_sampling_works_inside_and_outside_of_inference_mode() -> None:
    logits, legal = random_case(4, 500, 0.5, seed=2)
    with torch.inference_mode():
        inside = sample(torch.from_numpy(logits) * 1, legal, np.full(4, 0.3))
    outside = sample(torch.from_numpy(logits), legal, np.full(4, 0.3))
    np.testing.assert_array_equal(inside[0], outside[0])


@given(cases())
def test_greedy_takes_the_first_of_the_best_legal_actions(case: tuple[Matrix, Matrix, Matrix]) -> None:
    logits, legal, _ = case
    expected = np.argmax(np.where(legal, logits.astype(np.float64), -np.inf), axis=1)
    np.testing.assert_array_equal(greedy(torch.from_numpy(logits), legal), expected)


@pytest.mark.parametrize("share", [0.02, 0.6])
def test_what_cannot_be_drawn_from_is_refused(share: float) -> None:
    logits, legal = random_case(4, 300, share, seed=4)
    for poison in (np.nan, np.inf):
        bad = logits.copy()
        bad[2, np.flatnonzero(legal[2])[0]] = poison
        with pytest.raises(PolicyError, match=r"row 2 .*diverged"):
            sample(bad, legal, np.full(4, 0.5))
    bad = logits.copy()
    bad[~legal] = -np.inf  # what is illegal may be anything that torch gives
    sample(bad, legal, np.full(4, 0.5))
    empty = legal.copy()
    empty[3] = False
    for call in (lambda: sample(logits, empty, np.full(4, 0.5)), lambda: greedy(logits, empty)):
        with pytest.raises(PolicyError, match="row 3 has no legal action"):
            call()
    with pytest.raises(PolicyError, match=r"one shape .*\(4, 300\) and \(4, 299\)"):
        sample(logits, legal[:, 1:], np.full(4, 0.5))


@pytest.mark.parametrize(
    ("temperature", "epsilon", "message"),
    [
        (-1.0, 0.0, "temperature"),
        (1e-9, 0.0, "temperature"),
        (np.nan, 0.0, "temperature"),
        (np.inf, 0.0, "temp"),
    ]
    + [(1.0, epsilon, "epsilon") for epsilon in (-0.1, 1.5, np.nan, np.float32([1.5]), np.float32([np.nan]))],
)
def test_exploration_has_limits(temperature: float, epsilon: float, message: str) -> None:
    logits, legal = random_case(1, 5, 1.0, seed=0)
    with pytest.raises(ConfigError, match=message):
        sample(logits, legal, np.zeros(1), temperature, epsilon)


@pytest.mark.parametrize("actions", [9, 300])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_each_row_may_have_an_epsilon_of_its_own(temperature: float, actions: int) -> None:
    logits, legal = random_case(5, actions, 0.3, seed=4)
    uniforms = np.random.default_rng(2).uniform(size=5)
    epsilons = np.array([0.0, 1.0, 0.5, 0.25, 0.125], np.float32)
    drawn, log_probs = sample(logits, legal, uniforms, temperature, epsilons)
    for row, epsilon in enumerate(epsilons.tolist()):
        one = slice(row, row + 1)
        action, log_prob = sample(logits[one], legal[one], uniforms[one], temperature, epsilon)
        assert (drawn[row], log_probs[row]) == (action[0], log_prob[0])


@given(cases())
def test_masked_log_softmax_agrees_with_brute_force(case: tuple[Matrix, Matrix, Matrix]) -> None:
    logits, legal, _ = case
    logits = np.clip(logits, -50, 50)
    found = masked_log_softmax(torch.from_numpy(logits), torch.from_numpy(legal)).exp().numpy()
    np.testing.assert_allclose(found, brute_force(logits, legal, 1.0, 0.0), atol=1e-6)
    assert (found[~legal] == 0).all()


def test_masked_log_softmax_has_clean_gradients_and_entropy() -> None:
    numbers, mask = random_case(3, 300, 0.1, seed=8)
    logits, legal = torch.from_numpy(numbers).requires_grad_(), torch.from_numpy(mask)
    log_probs = masked_log_softmax(logits, legal)
    entropy = -(log_probs.exp() * log_probs).sum(1)
    exact = brute_force(numbers, mask, 1.0, 0.0)
    expected = [-(p[p > 0] * np.log(p[p > 0])).sum() for p in exact]
    np.testing.assert_allclose(entropy.detach().numpy(), expected, rtol=1e-5)
    entropy.sum().backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[~legal] == 0).all()
    assert (logits.grad[legal] != 0).any()


@pytest.mark.parametrize("actions", [3, 2187, 70_000])
def test_legal_counts(actions: int) -> None:
    legal = np.ones((2, actions), np.bool_)
    legal[1, 1:] = False
    assert legal_counts(legal).tolist() == [actions, 1]
