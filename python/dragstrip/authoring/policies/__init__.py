"""Policies as programs for a kernel: a BPF congestion control in whole numbers (docs/how-to/learning.md).

Belongs here: the model in fixed point, its error against floating point, and the C text. Does not belong
here: the steps, figures and hooks of an agent in the kernel (bpf/policy.h), and compiling and loading
(engines/agent/bpf.py).
"""

from __future__ import annotations

from dragstrip.authoring.policies.fixed import FixedModel
from dragstrip.authoring.policies.source import BpfProgram, bpf_source

__all__ = ["BpfProgram", "FixedModel", "bpf_source"]
"""The functions and classes that commands use."""
