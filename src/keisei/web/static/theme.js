// Sets light or dark before the page is drawn.
"use strict";
const chosen = localStorage.getItem("keisei-theme");
if (chosen) document.documentElement.dataset.theme = chosen;
