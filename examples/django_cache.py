"""A Django project in one file whose cache and sessions are in a table of kvref.

The page counts its visits in the cache, and those of each visitor in a session. docs/how-to/django.md runs it.
"""

from __future__ import annotations

import os
import sys

from django.conf import settings
from django.core.cache import cache
from django.core.management import execute_from_command_line
from django.http import HttpRequest, JsonResponse
from django.urls import path

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1", "localhost"],
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.environ.get("DJANGO_SECRET_KEY", "only for this example"),
    CACHES={
        "default": {
            "BACKEND": "kvref.client.django.KvrefCache",
            "LOCATION": os.environ.get("KVREF_ADDRESS", "127.0.0.1:11211"),
            "TIMEOUT": 300,
        }
    },
    INSTALLED_APPS=["django.contrib.sessions"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
)


def visits(request: HttpRequest) -> JsonResponse:
    """Return the visits of all visitors and of this one."""
    cache.add("visits", 0, timeout=None)
    request.session["visits"] = request.session.get("visits", 0) + 1
    return JsonResponse({"all": cache.incr("visits"), "yours": request.session["visits"]})


urlpatterns = [path("", visits)]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
