"""Training: regimes, loops, the trainer, evaluations, presets and callbacks."""
