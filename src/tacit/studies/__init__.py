"""What is asked: the study file."""

from tacit.studies.draft import draft
from tacit.studies.request import FederationRequest, PrivacyRequest
from tacit.studies.study import Study

__all__ = ["FederationRequest", "PrivacyRequest", "Study", "draft"]
