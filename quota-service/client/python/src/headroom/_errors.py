"""Failed requests."""

from __future__ import annotations

from .models import FieldError, Problem


class HeadroomError(Exception):
    """A request failed."""


class Unavailable(HeadroomError):
    """The service is away or busy, for longer than the client is patient: the same request may be sent again."""

    def __init__(self, detail: str, retry_after_s: float | None = None, problem: Problem | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        #: The earliest time for another try, where the service names one.
        self.retry_after_s = retry_after_s
        #: The answer of the service; None without one.
        self.problem = problem


class Refused(HeadroomError):
    """The service refuses the request, and will refuse it again."""

    def __init__(self, status: int, problem: Problem) -> None:
        fields = "".join(f"; {one.pointer}: {one.detail}" for one in problem.errors or [])
        known = f"; known: {', '.join(problem.known)}" if problem.known else ""
        super().__init__(f"{status} {problem.code}: {problem.detail}{fields}{known}")
        #: The HTTP status.
        self.status = status
        #: The whole answer.
        self.problem = problem

    def __reduce__(self) -> tuple[type[Refused], tuple[int, Problem]]:
        """An exception is made again of its arguments, where it comes from another process."""
        return type(self), (self.status, self.problem)

    @property
    def code(self) -> str:
        """The stable code, such as `unknown-pool`."""
        return self.problem.code

    @property
    def detail(self) -> str:
        """The fault, and the remedy."""
        return self.problem.detail

    @property
    def errors(self) -> list[FieldError]:
        """The refused fields of a body."""
        return list(self.problem.errors or [])

    @property
    def known(self) -> list[str]:
        """The known names, in answer to an unknown one."""
        return list(self.problem.known or [])


class Foreign(HeadroomError):
    """The answer is not one of quota-service: the URL is that of something else."""
