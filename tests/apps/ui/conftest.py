"""What tests of the pages ask for."""

from tests.browser import browser as browser
