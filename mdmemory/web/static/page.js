// What every page does beyond its HTML. Everything here is a convenience: all pages work without it.
import { watch } from "./live.js";
import { startSearch } from "./search.js";
import { startForms } from "./forms.js";
import { startKeys } from "./keys.js";

document.documentElement.classList.add("scripted");
startSearch();
startForms();
startKeys();
watch();
