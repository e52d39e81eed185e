/*
 * holdfastctl: look at a running holdfast and manage its API keys.
 */
#include <config.h>

#include <stdio.h>

#include "ctl/ctl.h"

int
main(int argc, char **argv)
{
	struct hf_ctl ctl;
	char text[HF_CTL_TEXT];
	int rc = hf_ctl_options(&ctl, argc, argv, text);

	if (rc != 0) {
		fprintf(stderr, "holdfastctl: %s\n", text);
		return rc;
	}
	if (ctl.help)
		hf_ctl_usage();
	else if (ctl.version)
		printf("holdfastctl " PACKAGE_VERSION "\n");
	else
		return hf_ctl_run(&ctl);
	return fflush(stdout) == 0 ? HF_EXIT_OK : HF_EXIT_FAILED;
}
