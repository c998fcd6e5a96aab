"""Callbacks that log norms while a model trains: of transformers' Trainer, and of Lightning."""

from __future__ import annotations

from typing import Any, Callable

from ._check import count
from .watch import watch

#: What is logged of each norm.
LOGGED: dict[str, Callable[[Any], float]] = {
    "sigma": lambda norm: norm.sigma.mean,
    "frozen_scale_error": lambda norm: norm.frozen_scale_error,
    "largest_output": lambda norm: norm.largest_output,
    "ones_share": lambda norm: norm.ones_share,
    "not_finite": lambda norm: norm.not_finite,
}


class NormLog:
    """Norms of every n-th training step, in `history`: a dict for each norm of such a step, of which
    `pandas.DataFrame(history)` makes a table. Hooks are there in these steps only."""

    def __init__(self, every: int, options: dict[str, Any]) -> None:
        self.every, self.history = count("log", "every", every, 1), list[dict[str, Any]]()
        self._options, self._seen = options, None

    def begin(self, model: Any, step: int) -> None:
        """Watches, if it is the turn of the step that begins."""
        self.end(step)
        if step % self.every == 0:
            self._seen = watch(model, **self._options)

    def end(self, step: int) -> dict[str, float]:
        """Of a step that was watched, "norms/NAME/sigma" and so on; else nothing."""
        seen, self._seen = self._seen, None
        if seen is None:
            return {}
        seen.close()
        try:
            norms = seen.result().norms
        except ValueError:
            return {}  # no norm was called
        rows = [{"step": step, "norm": norm.name, **{name: of(norm) for name, of in LOGGED.items()}} for norm in norms]
        self.history += rows
        return {f"norms/{row['norm']}/{name}": row[name] for row in rows for name in LOGGED}


def trainer_callback(every: int = 100, **options: Any) -> Any:
    """A `TrainerCallback` of transformers: `norms.history` has the norms of every n-th step, and so has the trainer's
    `state.log_history`.

    options   of `normscope.watch`
    Errors    ImportError without transformers
    """
    import transformers

    class NormCallback(transformers.TrainerCallback):
        def __init__(self) -> None:
            self.norms = NormLog(every, options)

        def on_step_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            self.norms.begin(model, state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            values = self.norms.end(state.global_step - 1)
            if values:
                state.log_history.append({"step": state.global_step, **values})

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.norms.end(state.global_step)

    return NormCallback()


def lightning_callback(every: int = 100, **options: Any) -> Any:
    """A `Callback` of Lightning, which logs the norms of every n-th batch through the module's logger; `norms.history` has
    them too.

    options   of `normscope.watch`
    Errors    ImportError without lightning
    """
    try:
        import lightning.pytorch as lightning
    except ImportError:
        import pytorch_lightning as lightning

    class NormCallback(lightning.Callback):
        def __init__(self) -> None:
            self.norms = NormLog(every, options)

        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
            self.norms.begin(pl_module, trainer.global_step)

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            values = self.norms.end(max(0, trainer.global_step - 1))
            if values:
                pl_module.log_dict(values)

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            self.norms.end(trainer.global_step)

    return NormCallback()
