(function () {
	"use strict";
	var form = document.querySelector("form");
	var text = document.getElementById("verdicts");
	var save = document.getElementById("save");
	var left = document.getElementById("left");
	var lines = text.value.split("\n");
	var head = lines.slice(0, 2);
	var n = lines.length - 3;

	function tell() {
		var out = head.slice(), open = 0;

		for (var i = 1; i <= n; i++) {
			var box = form.querySelector(
			    "input[name=case-" + i + "]:checked");
			var note = form.elements["note-" + i].value.trim();

			if (!box)
				open++;
			out.push(i + " " + (box ? box.value : "?") +
			    (note ? "  " + note : ""));
		}
		text.value = out.join("\n") + "\n";
		left.textContent = open ? open + " still open" : "all done";
	}

	form.addEventListener("input", function (e) {
		if (e.target !== text)
			tell();
	});
	save.hidden = false;
	save.addEventListener("click", function () {
		var a = document.createElement("a");

		a.href = URL.createObjectURL(
		    new Blob([text.value], { type: "text/plain" }));
		a.download = "verdicts.txt";
		a.click();
	});
	tell();
})();
