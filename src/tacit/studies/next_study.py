"""The next study: one that starts from the public model of the study before."""

from __future__ import annotations

from dataclasses import replace

from tacit.errors import SettingError
from tacit.methods import METHODS, Method
from tacit.studies.run import DEFAULT_PRIVATE
from tacit.studies.study import Study


def next_study(study: Study, model: Method) -> str:
    """A study file that asks the same again, from the model of this one where its method can start from one.

    The model's numbers stand in the file, so that they are part of what parties consent to.

    Raises:
        SettingError: if the model is not linear, so that there is nothing to start from.
    """
    if getattr(model, "coef_", None) is None:
        raise SettingError(f"{model.name} learns a model that is not linear; no study can start from it yet")
    name = study.method or (DEFAULT_PRIVATE if study.privacy is not None else None)
    settings = dict(study.settings)
    if name is not None and "start" in METHODS[name]._get_param_names():
        settings["start"] = {"coef": model.coef_.tolist(), "intercept": model.intercept_.tolist()}
    follower = replace(study, name=f"{study.name[:92]}, next", method=name, settings=settings)
    return follower.to_toml()
