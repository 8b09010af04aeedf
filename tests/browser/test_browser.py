"""The browser that the page's tests will use starts, runs modules and shows what it is given."""

import pytest
from playwright.sync_api import Browser


@pytest.mark.browser
def test_the_browser_runs_a_module(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(
        "<p id='sum'></p><script type='module'>document.querySelector('#sum').textContent = 1 + 2</script>"
    )
    page.wait_for_function("document.querySelector('#sum').textContent !== ''")
    assert page.text_content("#sum") == "3"
    page.close()
